#include "shelf.h"

#include <string.h>

int shelf_add(struct shelf *shelf, const char *title) {
    if (shelf->count == SHELF_ROOM) {
        return 0;
    }
    shelf->titles[shelf->count++] = title;
    return 1;
}

int shelf_find(const struct shelf *shelf, const char *title) {
    for (int place = 0; place < shelf->count; place++) {
        if (strcmp(shelf->titles[place], title) == 0) {
            return place + 1;
        }
    }
    return 0;
}
