"""The tests. `checked` is what jaxtyping checks every function of the library with: an int may stand for a
float."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
