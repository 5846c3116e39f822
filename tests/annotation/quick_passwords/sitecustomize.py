"""For the tests' servers: hash passwords at the least cost. Usually it is 0.3 s, and tests make many accounts."""

import bcrypt

_gensalt = bcrypt.gensalt
bcrypt.gensalt = lambda rounds=4, prefix=b"2b": _gensalt(4, prefix)
