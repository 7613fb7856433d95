"""L1: statements, told or drawn from turns, each with the words it rests on, and merged with what is held."""
