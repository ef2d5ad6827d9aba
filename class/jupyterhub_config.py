"""The settings of a class on one server. `make class` reads this file; README.md beside it says how to run a
class.

Change what you like, then restart the hub: kill -USR1 of the process that `make class` names (students'
servers keep running), or Ctrl+C and `make class` (they end; files are kept). The address, the port, the data
folder and TLS are options of the command. Whatever stands here, the hub refuses to start where it would be
open to everybody (hub.py, `refusal`).
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent  # the folder class/
sys.path.insert(0, str(HERE))
import hub  # noqa: E402

DATA = Path(os.environ["LESSON_CLASS_DATA"])  # set by make class: hub/ (secrets, log), original/, homes/
c = get_config()  # JupyterHub brings it

# --- Who comes in
# ----------------------------------------------------------------------------------------------------- A
# student signs up at /hub/signup with the class code (data/hub/class_code) and a password of their own.
# Stricter: open_signup = False; then you approve each student at /hub/authorize.
c.JupyterHub.authenticator_class = hub.ClassAuthenticator
c.ClassAuthenticator.class_code = (DATA / "hub" / "class_code").read_text().strip()
c.ClassAuthenticator.open_signup = True
c.ClassAuthenticator.allow_all = True  # whoever has an account here and the password to it
c.ClassAuthenticator.username_pattern = r"^[a-z][a-z0-9_-]{0,23}$"  # fits into the name of a system account
c.ClassAuthenticator.minimum_password_length = 8
c.ClassAuthenticator.check_common_password = True
c.ClassAuthenticator.allowed_failed_logins = 10
c.ClassAuthenticator.seconds_before_next_try = 60
c.ClassAuthenticator.instructor_hash = str(DATA / "hub" / "instructor.hash")

# --- What a student gets
# ---------------------------------------------------------------------------------------------- Memory:
# mem_limit is for all processes of a student together, and is looked at every poll_interval seconds: the
# largest process (a kernel) is stopped. data_limit is for each process: an allocation beyond it fails, and
# the kernel lives on.
c.Spawner.mem_limit = "2G"
c.StudentSpawner.data_limit = "2G"
c.Spawner.poll_interval = 5
c.Spawner.default_url = "/lab/tree/00_start_here.ipynb"
c.Spawner.disable_user_config = True
c.Spawner.environment = {
    "OMP_NUM_THREADS": "1",
    "LESSON_DEVICE": "cpu",
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
    "JUPYTER_CONFIG_PATH": str(HERE / "jupyter"),  # no pop-ups; kernels on sockets, not ports
}

# --- How many, how long
# -----------------------------------------------------------------------------------------------
c.Spawner.start_timeout = 180  # 20 students at once on two idle cores took 48 s
c.Spawner.http_timeout = 180
c.JupyterHub.concurrent_spawn_limit = 30  # more at once are asked to try again in a moment
c.JupyterHub.active_server_limit = 0  # 0: no limit; else as many as fit into memory
IDLE_S = 3600  # a server without activity for this long is stopped; files are kept

# --- Where students run
# ----------------------------------------------------------------------------------------------- As root: a
# system account each, so that A cannot read B's files. Without root: a folder each, which isolates nothing.
# Another machine or a cluster: another spawner; kubernetes_config.py is an example.
c.JupyterHub.spawner_class = hub.SystemUserSpawner if os.geteuid() == 0 else hub.FolderSpawner
c.StudentSpawner.homes = str(DATA / "homes")
c.StudentSpawner.original = str(DATA / "original")

# --- What keeps it running (nothing to change for a class)
# ------------------------------------------------------------
c.JupyterHub.db_url = f"sqlite:///{DATA / 'hub' / 'jupyterhub.sqlite'}"
c.JupyterHub.cookie_secret_file = str(DATA / "hub" / "cookie_secret")
c.JupyterHub.template_paths = [str(HERE / "templates")]
c.JupyterHub.cleanup_servers = False  # a hub that starts again takes the students' servers over
c.JupyterHub.cleanup_proxy = True
c.ConfigurableHTTPProxy.command = os.environ["LESSON_CLASS_PROXY"].split(os.pathsep)
c.ConfigurableHTTPProxy.auth_token = (DATA / "hub" / "proxy_token").read_text().strip()
c.ConfigurableHTTPProxy.pid_file = str(DATA / "hub" / "proxy.pid")
c.ConfigurableHTTPProxy.check_running_interval = 5  # a proxy that died is started again
c.JupyterHub.services = [
    {"name": "idle", "command": [sys.executable, str(HERE / "idle.py"), f"--timeout={IDLE_S}"]},
    {"name": "class-command", "api_token": (DATA / "hub" / "command_token").read_text().strip()},
]
c.JupyterHub.load_roles = [
    # not JupyterHub's own role "admin": that one opens students' servers, whose pages could then act for the
    # instructor
    {
        "name": "instructor",
        "users": [hub.INSTRUCTOR],
        "scopes": ["admin-ui", "admin:users", "admin:servers", "list:services", "read:services", "read:hub"],
    },
    {
        "name": "idle",
        "services": ["idle"],
        "scopes": ["list:users", "read:users:activity", "read:servers", "delete:servers"],
    },
    {
        "name": "class-command",
        "services": ["class-command"],
        "scopes": ["list:users", "read:users", "servers", "shutdown"],
    },
]
