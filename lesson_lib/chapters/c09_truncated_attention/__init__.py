"""Chapter 09: windows over speech, and beyond them."""
