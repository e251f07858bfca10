"""The tests, laid out like the package; a package themselves so that they can share the browser harness."""
