"""An example for a large class: the same course on a Kubernetes cluster, with the figures of README.md.

It goes into the hub of the Helm chart "Zero to JupyterHub" (hub.extraConfig, or a file that it loads); the
chart brings the hub, the proxy, TLS and KubeSpawner. It is an example: it was checked against KubeSpawner's
documented settings, and not run on a cluster.

The image holds Python, the course, and the original that copies.py pulls from:

    FROM python:3.12-slim
    COPY . /opt/course
    RUN cd /opt/course && pip install torch==2.15.0 --index-url URL_OF_PYTORCH_CPU \\
        && pip install -r requirements-class.txt -e . \\
        && rm -r notebooks/solutions
    RUN useradd --create-home --uid 1000 student
    USER student

What is different from one server: each student has a pod (nobody shares a kernel of the operating system's
accounts), the memory limit is the pod's, and the home is a volume, which outlives pods. What is the same:
copies.py, the limits, the settings of JupyterLab.
"""

c = get_config()  # JupyterHub brings it

# --- Who comes in: your institution's log-in. Never an open hub: name who may.
c.JupyterHub.authenticator_class = "oauthenticator.generic.GenericOAuthenticator"
c.Authenticator.allow_all = False
c.Authenticator.allowed_users = set()  # the names of the class, or allowed_groups
c.Authenticator.admin_users = {"instructor"}

# --- A student's pod. Measured on one server, OMP_NUM_THREADS=1: server 0.1 GiB; kernel after lesson 03 0.3
# GiB, after lesson 06 0.8 GiB, at the largest moment of lesson 11 1.05 GiB; 6 s of one core from the start to
# `import torch` done.
c.JupyterHub.spawner_class = "kubespawner.KubeSpawner"
c.KubeSpawner.image = "registry.example.org/attention-course:2026"
c.KubeSpawner.mem_guarantee = "1G"  # what the scheduler counts: decides how many students share a node
c.KubeSpawner.mem_limit = "2G"  # beyond it the kernel (or the pod) is stopped
c.KubeSpawner.cpu_guarantee = (
    0.25  # four students on a core: each starts within half a minute if all start at once
)
c.KubeSpawner.cpu_limit = 2
c.KubeSpawner.uid = 1000
c.KubeSpawner.fs_gid = 1000
c.KubeSpawner.allow_privilege_escalation = False
c.KubeSpawner.automount_service_account_token = False

# --- Copies and progress: a volume for each student, kept when the pod ends.
c.KubeSpawner.storage_pvc_ensure = True
c.KubeSpawner.storage_capacity = "1Gi"  # the copies take 7 MB; work and trained weights come on top
c.KubeSpawner.pvc_name_template = "claim-{user_server}"
c.KubeSpawner.volumes = [
    {"name": "home", "persistentVolumeClaim": {"claimName": c.KubeSpawner.pvc_name_template}}
]
c.KubeSpawner.volume_mounts = [{"name": "home", "mountPath": "/home/student"}]
c.Spawner.cmd = [
    *("python", "-I", "-m", "lesson_lib.cli.sync_copies", "/opt/course", "/home/student/work"),
    *("python", "-P", "-m", "jupyterhub.singleuser"),
]
c.Spawner.notebook_dir = "/home/student/work"
c.Spawner.default_url = "/lab/tree/00_start_here.ipynb"
c.Spawner.environment = {
    "OMP_NUM_THREADS": "1",  # a kernel sees all cores of the node, and would start a thread on each
    "LESSON_DEVICE": "cpu",
    "LESSON_HOME": "/home/student/.lesson",
    "JUPYTER_CONFIG_PATH": "/opt/course/class/jupyter",
}

# --- How many at once. A node that has to be started first takes minutes: keep spare nodes ready before a
# class begins.
c.Spawner.start_timeout = 600
c.Spawner.http_timeout = 180
c.JupyterHub.concurrent_spawn_limit = 64
c.JupyterHub.active_server_limit = 0
# Idle servers: the chart's own culler (cull.enabled, cull.timeout: 3600).
