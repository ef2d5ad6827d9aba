"""How this course is graded: `make assignments` copies this file beside the assignments; change it here.

Run nbgrader in that folder, with the class environment:

    cd build/assignments
    ../../.venv-class/bin/nbgrader autograde 03_matrix_form          all of submitted/STUDENT/03_matrix_form/
    ../../.venv-class/bin/nbgrader generate_feedback 03_matrix_form  feedback/STUDENT/03_matrix_form/ (HTML)
    ../../.venv-class/bin/nbgrader export --to grades.csv            the points of all students

Students' code runs without a sandbox, with the rights of whoever grades: grade as a user who owns nothing
else, in a container or on a machine of its own.
"""

import os
import re
import sys
import tempfile
from contextlib import contextmanager, suppress

from nbconvert.exporters import HTMLExporter
from nbconvert.preprocessors import ClearMetadataPreprocessor, CSSHTMLHeaderPreprocessor
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.preprocessors import (
    AssignLatePenalties,
    CheckCellMetadata,
    ClearHiddenTests,
    ClearOutput,
    ClearSolutions,
    ComputeChecksums,
    DeduplicateIds,
    Execute,
    GetGrades,
    LimitOutput,
    LockCells,
    NbGraderPreprocessor,
    OverwriteCells,
    OverwriteKernelspec,
    SaveAutoGrades,
    SaveCells,
)

from lesson_lib.cli import assignments
from lesson_lib.cli.sources import split_exercise


class Stubs(ClearSolutions):
    """The learner's side of each answer: our `### STUB:` lines in the place of nbgrader's one stub
    for all."""

    def preprocess_cell(self, cell, resources, cell_index):
        cell.source = split_exercise(cell.source, solved=False).rstrip("\n")
        return cell, resources


class Overwrite(OverwriteCells):
    """A check that nobody touched gets its hidden test back without a word; nbgrader would tell of a changed
    checksum, since it keeps that of the check with the hidden test in it."""

    def preprocess_cell(self, cell, resources, cell_index):
        given = cell.metadata.get("nbgrader", {})
        if given.get("grade") and given.get("locked"):
            with suppress(MissingEntry):
                where = (given["grade_id"], self.notebook_id, self.assignment_id)
                source = self.gradebook.find_source_cell(*where).source
                if cell.source == assignments.without_hidden(source):
                    cell.source = source
        return super().preprocess_cell(cell, resources, cell_index)


class Run(Execute):
    """Runs a submission like a build of the course: on the CPU, one thread, and nobody's progress is
    touched."""

    def preprocess(self, nb, resources, km=None):
        for cell in nb.cells:
            if cell.metadata.get("nbgrader", {}).get("grade"):
                assignments.name_the_student(cell, resources["nbgrader"]["student"])
        return super().preprocess(nb, resources, km)

    @contextmanager
    def setup_kernel(self, **options):
        with tempfile.TemporaryDirectory(prefix="lesson_home_", ignore_cleanup_errors=True) as empty:
            own = {"LESSON_HOME": empty, "IPYTHONDIR": empty, "LESSON_DEVICE": "cpu"}
            own |= {"LESSON_PROGRESS": "off", "OMP_NUM_THREADS": "1"}
            with super().setup_kernel(env=os.environ | own, **options):
                yield


class Verdicts(NbGraderPreprocessor):
    """In each check the verdict of the hidden test, and nothing else; below the check of an open answer what
    to grade it by."""

    def preprocess_cell(self, cell, resources, cell_index):
        given = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "code" and given.get("locked"):
            if given.get("grade"):
                assignments.judged(cell)
            elif given["grade_id"].startswith("check-"):
                assignments.rubric_beside(cell)
        return cell, resources


class Save(SaveAutoGrades):
    """Marks for the formgrader what a person should look at: what could not be judged. Open answers that are
    not empty nbgrader marks by itself."""

    def _add_score(self, cell, resources):
        super()._add_score(cell, resources)
        verdicts = [o.data[assignments.MIME] for o in cell.outputs if assignments.MIME in o.get("data", {})]
        if not all(verdict["sure"] for verdict in verdicts):
            where = (self.notebook_id, self.assignment_id, self.student_id)
            self.gradebook.find_grade(cell.metadata.nbgrader.grade_id, *where).needs_manual_grade = True
            self.gradebook.db.commit()


class Feedback(NbGraderPreprocessor):
    """What a student may see of the graded notebook, and the titles of what was graded, or still waits for a
    person."""

    def preprocess(self, nb, resources):
        given = resources["nbgrader"]
        with Gradebook(given["db_url"]) as book:
            where = (given["notebook"], given["assignment"], given["student"])
            grades = book.find_submission_notebook(*where).grades
            resources["waits"] = {grade.name for grade in grades if grade.needs_manual_grade}
        resources["titles"] = assignments.titles(nb)
        assignments.feedback(nb)
        return nb, resources


class OfflinePage(HTMLExporter):
    """Feedback as a page that loads nothing from elsewhere, formulas included."""

    def from_notebook_node(self, nb, resources=None, **options):
        page, resources = super().from_notebook_node(nb, resources, **options)
        page = re.sub(r"<script[^>]*\ssrc=.*?</script>", "", page, flags=re.S)
        page = assignments.titled(page, resources["titles"], resources["waits"])
        return assignments.with_formulas(page), resources


c = get_config()

# nbgrader starts `alembic` to make its database; it stands beside the Python that runs this.
os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])

c.CourseDirectory.course_id = "attention"
# Seconds by the clock for one cell, and for a kernel to answer once it is interrupted. They are for cells
# that wait for ever: a check ends an answer that computes for ever by itself, after five seconds of the
# processor, which are a minute where a class works.
c.Execute.timeout = 300
c.Execute.iopub_timeout = 60
# Without the folder of the submission on the path: a file lesson_lib.py or torch.py handed in is not
# imported.
c.Execute.extra_arguments = [
    "--HistoryManager.hist_file=:memory:",
    "--InteractiveShellApp.ignore_cwd=True",
]
# A graded cell that a student has deleted comes back.
c.OverwriteCells.add_missing_cells = True

# What comes in after the due date is told, and costs nothing; "zero" takes all points.
c.LateSubmissionPlugin.penalty_method = "none"

c.GenerateAssignment.preprocessors = [
    LockCells,
    Stubs,
    ClearOutput,
    CheckCellMetadata,
    ComputeChecksums,
    SaveCells,
    ClearHiddenTests,
    ComputeChecksums,
    CheckCellMetadata,
]
c.Autograde.sanitize_preprocessors = [
    ClearOutput,
    DeduplicateIds,
    OverwriteKernelspec,
    Overwrite,
    CheckCellMetadata,
]
c.Autograde.autograde_preprocessors = [
    Run,
    Verdicts,
    ClearMetadataPreprocessor,
    LimitOutput,
    Save,
    AssignLatePenalties,
    CheckCellMetadata,
]
c.GenerateFeedback.exporter_class = OfflinePage
c.GenerateFeedback.preprocessors = [GetGrades, Feedback, CSSHTMLHeaderPreprocessor]
