"""Chapter 08: paths, memory and cost beside recurrent networks."""
