"""Small systems that the sources name, one file each: what the paper has, and what was changed to train in a
minute."""
