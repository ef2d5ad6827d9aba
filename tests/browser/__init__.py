"""A learner in a browser: Chromium driven through a real JupyterLab on loopback."""
