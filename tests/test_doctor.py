"""The doctor finds what is wrong, says it in a sentence, and says what to do."""

import importlib

import pytest

from lesson_lib.cli import doctor


def test_each_check_gives_a_finding():
    for look in doctor.CHECKS:
        finding = look()
        assert finding.text and (finding.fine or finding.repair), look.__name__


def test_a_mac_with_an_intel_processor_is_reported(monkeypatch):
    monkeypatch.setattr(doctor.sys, "platform", "darwin")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    finding = doctor.python()
    assert not finding.fine and "2.2.2" in finding.repair


def test_a_missing_and_a_wrong_package_are_named(tmp_path):
    (tmp_path / "requirements.txt").write_text(
        "-e .\n# a note == here\npytest==999.1\nno-such-package-here==1.0\n"
        "pip==0.1\nneither==1.0 ; sys_platform == 'plan9'\n"
    )
    finding = doctor.packages(tmp_path)
    assert not finding.fine and "make setup" in finding.repair
    assert "in place of 999.1" in finding.text and "no-such-package-here none in place of 1.0" in finding.text
    assert "pip" not in finding.text and "neither" not in finding.text


def test_a_newer_package_is_named_and_fine(tmp_path):
    (tmp_path / "requirements.txt").write_text("pip==0.1\n")
    finding = doctor.packages(tmp_path)
    assert finding.fine and "newer than the course was tested with: pip " in finding.text


def test_a_broken_torch_is_reported(monkeypatch):
    def broken(name):
        raise OSError("libtorch.so: cannot open")

    monkeypatch.setattr(importlib, "import_module", broken)
    finding = doctor.torch()
    assert not finding.fine and "libtorch.so" in finding.text and "make setup" in finding.repair


@pytest.mark.parametrize("number", [126, 1114])
def test_a_windows_without_torchs_runtime_is_told_what_to_install(number, monkeypatch, capsys):
    def broken(name):
        error = OSError(f"[WinError {number}] Error loading c10.dll or one of its dependencies.")
        error.winerror = number  # Python sets it on Windows only
        raise error

    monkeypatch.setattr(importlib, "import_module", broken)
    finding = doctor.torch()
    assert not finding.fine and "c10.dll" in finding.text and "Visual C++ runtime" in finding.repair
    assert doctor.main(brief=True) == 1
    assert capsys.readouterr().out.count("c10.dll") == 1  # what needs torch is not looked at


def test_an_unknown_device_is_reported(monkeypatch):
    monkeypatch.setenv("LESSON_DEVICE", "toaster")
    finding = doctor.device()
    assert not finding.fine and "toaster" in finding.text and "LESSON_DEVICE" in finding.repair


def test_a_home_that_cannot_be_written_is_reported(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LESSON_HOME", str(tmp_path / "file" / "below"))
    finding = doctor.home()
    assert not finding.fine and "LESSON_HOME" in finding.repair
    monkeypatch.setenv("LESSON_HOME", str(tmp_path / "new" / "below"))
    assert doctor.home().fine and not (tmp_path / "new").exists()


def test_no_path_of_the_machine_is_printed(monkeypatch, tmp_path):
    """Lesson 00 shows the report: neither a chosen folder nor the user's name may stand in it."""
    monkeypatch.setenv("LESSON_HOME", str(tmp_path))
    assert str(tmp_path) not in doctor.home().text
    monkeypatch.delenv("LESSON_HOME")
    assert str(doctor.Path.home()) not in doctor.home().text


def test_a_full_disk_is_reported(monkeypatch):
    monkeypatch.setattr(doctor.preflight, "free_gib", lambda folder: 0.1)
    assert not doctor.disk().fine


def test_missing_lessons_are_reported_and_missing_copies_are_not(tmp_path):
    assert not doctor.notebooks(tmp_path).fine
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "00_start_here.ipynb").write_text("{}")
    assert doctor.notebooks(tmp_path) == doctor.Finding(
        True, "0 of 1 files are copied to work/; 1 come with the next start of make lab"
    )


@pytest.mark.parametrize("fine, code, last", [(True, 0, "All is fine"), (False, 1, "1 to mend")])
def test_main_counts(monkeypatch, capsys, fine, code, last):
    monkeypatch.setattr(doctor, "CHECKS", (lambda: doctor.Finding(fine, "the weather", "take a coat"),))
    assert doctor.main() == code
    out = capsys.readouterr().out
    assert last in out and "the weather" in out
