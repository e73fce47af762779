/* The texts of page.css and page.js. */
#ifndef GPUCONV_ROOM_PAGE_TEXT_H
#define GPUCONV_ROOM_PAGE_TEXT_H

extern const char gc_page_style[], gc_page_script[];

#endif
