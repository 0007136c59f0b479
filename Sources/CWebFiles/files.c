#include "CWebFiles.h"

// Every file of the web pages, put into the program by the compiler: one binary, nothing beside it. In C,
// because Swift takes seconds and gigabytes for an array literal of this size, and `#embed` no time.
// A file that is missing here fails a test (`WebFileTests`).
#pragma clang diagnostic ignored "-Wc23-extensions"

static const struct belfry_web_file browser_page[] = {
    {"hub.js", (const uint8_t[]){
#embed "../HubServer/BrowserPage/Files/hub.js" suffix(, 0)
    }},
    {"icon.svg", (const uint8_t[]){
#embed "../HubServer/BrowserPage/Files/icon.svg" suffix(, 0)
    }},
    {"index.html", (const uint8_t[]){
#embed "../HubServer/BrowserPage/Files/index.html" suffix(, 0)
    }},
    {"local.js", (const uint8_t[]){
#embed "../HubServer/BrowserPage/Files/local.js" suffix(, 0)
    }},
    {"page.js", (const uint8_t[]){
#embed "../HubServer/BrowserPage/Files/page.js" suffix(, 0)
    }},
    {"style.css", (const uint8_t[]){
#embed "../HubServer/BrowserPage/Files/style.css" suffix(, 0)
    }},
    {"webpush.js", (const uint8_t[]){
#embed "../HubServer/BrowserPage/Files/webpush.js" suffix(, 0)
    }},
    {"worker.js", (const uint8_t[]){
#embed "../HubServer/BrowserPage/Files/worker.js" suffix(, 0)
    }},
    {0, 0},
};
const struct belfry_web_file *belfry_browser_page_files(void) { return browser_page; }

static const struct belfry_web_file portal[] = {
    {"portal.html", (const uint8_t[]){
#embed "../HubServer/Portal/Files/portal.html" suffix(, 0)
    }},
    {0, 0},
};
const struct belfry_web_file *belfry_portal_files(void) { return portal; }
