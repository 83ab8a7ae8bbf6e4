"""For those who test workflows, and for those who test Holdfast: shipped, never imported by the rest."""
