import NotificationHubs
import SecurePush

// What an app does first, as far as it goes without a hub.
let news = try TagExpression(parsing: "news && !muted")
print(news)
