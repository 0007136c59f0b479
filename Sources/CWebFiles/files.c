#include "CWebFiles.h"

// Every file of the web pages, put into the program by the compiler: one binary, nothing beside it. In C,
// because Swift takes seconds and gigabytes for an array literal of this size, and `#embed` no time.
// A file that is missing here fails a test (`PortalTests`).
#pragma clang diagnostic ignored "-Wc23-extensions"

static const struct belfry_web_file portal[] = {
    {"activity.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/activity.js" suffix(, 0)
    }},
    {"api.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/api.js" suffix(, 0)
    }},
    {"app.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/app.js" suffix(, 0)
    }},
    {"audience.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/audience.js" suffix(, 0)
    }},
    {"chart.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/chart.js" suffix(, 0)
    }},
    {"compose.css", (const uint8_t[]){
#embed "../HubServer/Portal/Files/compose.css" suffix(, 0)
    }},
    {"composeform.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/composeform.js" suffix(, 0)
    }},
    {"composepreview.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/composepreview.js" suffix(, 0)
    }},
    {"copyas.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/copyas.js" suffix(, 0)
    }},
    {"credentials.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/credentials.js" suffix(, 0)
    }},
    {"devicefile.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/devicefile.js" suffix(, 0)
    }},
    {"devices.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/devices.js" suffix(, 0)
    }},
    {"drafts.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/drafts.js" suffix(, 0)
    }},
    {"dress.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/dress.js" suffix(, 0)
    }},
    {"editor.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/editor.js" suffix(, 0)
    }},
    {"emulator.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/emulator.js" suffix(, 0)
    }},
    {"essentials.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/essentials.js" suffix(, 0)
    }},
    {"explanation.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/explanation.js" suffix(, 0)
    }},
    {"hubs.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/hubs.js" suffix(, 0)
    }},
    {"icon.svg", (const uint8_t[]){
#embed "../HubServer/Portal/Files/icon.svg" suffix(, 0)
    }},
    {"keys.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/keys.js" suffix(, 0)
    }},
    {"lately.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/lately.js" suffix(, 0)
    }},
    {"list.css", (const uint8_t[]){
#embed "../HubServer/Portal/Files/list.css" suffix(, 0)
    }},
    {"markup.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/markup.js" suffix(, 0)
    }},
    {"message.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/message.js" suffix(, 0)
    }},
    {"notificationrows.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/notificationrows.js" suffix(, 0)
    }},
    {"outcomes.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/outcomes.js" suffix(, 0)
    }},
    {"overview.css", (const uint8_t[]){
#embed "../HubServer/Portal/Files/overview.css" suffix(, 0)
    }},
    {"policies.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/policies.js" suffix(, 0)
    }},
    {"pages/activity.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/pages/activity.js" suffix(, 0)
    }},
    {"pages/browser.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/pages/browser.js" suffix(, 0)
    }},
    {"pages/channels.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/pages/channels.js" suffix(, 0)
    }},
    {"pages/compose.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/pages/compose.js" suffix(, 0)
    }},
    {"pages/confirmed.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/pages/confirmed.js" suffix(, 0)
    }},
    {"pages/credentials.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/pages/credentials.js" suffix(, 0)
    }},
    {"pages/device.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/pages/device.js" suffix(, 0)
    }},
    {"pages/devices.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/pages/devices.js" suffix(, 0)
    }},
    {"pages/hubs.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/pages/hubs.js" suffix(, 0)
    }},
    {"pages/jobs.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/pages/jobs.js" suffix(, 0)
    }},
    {"pages/notification.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/pages/notification.js" suffix(, 0)
    }},
    {"pages/notifications.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/pages/notifications.js" suffix(, 0)
    }},
    {"pages/overview.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/pages/overview.js" suffix(, 0)
    }},
    {"pages/phones.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/pages/phones.js" suffix(, 0)
    }},
    {"pages/policies.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/pages/policies.js" suffix(, 0)
    }},
    {"pages/removals.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/pages/removals.js" suffix(, 0)
    }},
    {"pages/schedules.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/pages/schedules.js" suffix(, 0)
    }},
    {"pages/signin.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/pages/signin.js" suffix(, 0)
    }},
    {"pages/traffic.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/pages/traffic.js" suffix(, 0)
    }},
    {"pages/user.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/pages/user.js" suffix(, 0)
    }},
    {"payloads.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/payloads.js" suffix(, 0)
    }},
    {"phones.css", (const uint8_t[]){
#embed "../HubServer/Portal/Files/phones.css" suffix(, 0)
    }},
    {"platforms.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/platforms.js" suffix(, 0)
    }},
    {"portal.css", (const uint8_t[]){
#embed "../HubServer/Portal/Files/portal.css" suffix(, 0)
    }},
    {"portal.html", (const uint8_t[]){
#embed "../HubServer/Portal/Files/portal.html" suffix(, 0)
    }},
    {"preview.css", (const uint8_t[]){
#embed "../HubServer/Portal/Files/preview.css" suffix(, 0)
    }},
    {"preview.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/preview.js" suffix(, 0)
    }},
    {"reauthentication.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/reauthentication.js" suffix(, 0)
    }},
    {"received.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/received.js" suffix(, 0)
    }},
    {"sending.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/sending.js" suffix(, 0)
    }},
    {"settings.css", (const uint8_t[]){
#embed "../HubServer/Portal/Files/settings.css" suffix(, 0)
    }},
    {"standin.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/standin.js" suffix(, 0)
    }},
    {"text.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/text.js" suffix(, 0)
    }},
    {"texts/en.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/texts/en.js" suffix(, 0)
    }},
    {"texts/fr.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/texts/fr.js" suffix(, 0)
    }},
    {"texts/zh.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/texts/zh.js" suffix(, 0)
    }},
    {"view.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/view.js" suffix(, 0)
    }},
    {"webpush.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/webpush.js" suffix(, 0)
    }},
    {"worker.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/worker.js" suffix(, 0)
    }},
    {"xml.js", (const uint8_t[]){
#embed "../HubServer/Portal/Files/xml.js" suffix(, 0)
    }},
    {0, 0},
};
const struct belfry_web_file *belfry_portal_files(void) { return portal; }
