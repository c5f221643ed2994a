"""Small worlds that tests of several packages share: pictures, data sets, runs."""
