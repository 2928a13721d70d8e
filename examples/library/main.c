#include <stdio.h>

#include "shelf.h"

int main(void) {
    struct shelf shelf = {0};
    shelf_add(&shelf, "Emma");
    shelf_add(&shelf, "Dracula");
    printf("Dracula is at %d\n", shelf_find(&shelf, "Dracula"));
    return 0;
}
