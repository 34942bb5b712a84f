"""What the tests of azure-cosmos take from the test utilities of its repository, which are not published."""
