"""Small systems that the sources name and several chapters use, one file each: what the paper has, and what
was changed to train in a minute. Those of one chapter lie with it. `pretrained` opens models that others have
published."""
