"""What keeps a home for years: copies of it that are proven, and the ways back.

    backup     one file with all of a home, made while others write      archive   its form, and reading it warily
    restore    a home made of a backup                                   aside     what is replaced is kept
    rebuild    the database made anew of the files beside it, with a proof that it is the same
    repair     what `doctor` finds, mended where it can be               compact   unused space given back

`engine` is the one door to the store that is in use: what is done here is done to its files.
"""
