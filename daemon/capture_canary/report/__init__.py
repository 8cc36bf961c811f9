"""The history as people read it: charts, one page of HTML, pictures, a story."""
