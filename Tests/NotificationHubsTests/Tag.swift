import NotificationHubs

/// The testing library has a type of that name too.
typealias Tag = NotificationHubs.Tag
