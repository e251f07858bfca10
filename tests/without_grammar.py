"""A pytest plugin that every process of the tests loads first: nbformat starts without a grammar of web addresses.

Through jsonschema it would compile one, in more than a second, and ask it nothing: no notebook's schema has addresses.
"""

import sys

sys.modules.setdefault("rfc3987_syntax", None)  # as if it were not installed, which jsonschema allows for
