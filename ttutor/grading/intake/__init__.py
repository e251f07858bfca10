"""What a class handed in: archives, names, files and the list of the class."""
