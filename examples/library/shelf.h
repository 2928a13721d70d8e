#ifndef SHELF_H
#define SHELF_H

#define SHELF_ROOM 12

struct shelf {
    const char *titles[SHELF_ROOM];
    int count;
};

/* Puts a book on the shelf. Returns 0 where there is no room left. */
int shelf_add(struct shelf *shelf, const char *title);

/* Returns the place of a book, from 1, or 0 where it is not there. */
int shelf_find(const struct shelf *shelf, const char *title);

#endif
