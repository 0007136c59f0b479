/// Names of the protocol that client and server share (spec `rest-api.md` 1.2–1.4, 5.1).
package enum WireName {
  package static let apiVersionParameter = "api-version"
  /// The version that this library speaks.
  package static let apiVersion = "2020-06"

  // Request headers.
  package static let authorization = "Authorization"
  package static let contentType = "Content-Type"
  package static let format = "ServiceBusNotification-Format"
  package static let tags = "ServiceBusNotification-Tags"
  /// A few tutorials send this in the place of ``tags``.
  package static let tagsAlias = "Tags"
  package static let deviceHandle = "ServiceBusNotification-DeviceHandle"
  package static let scheduleTime = "ServiceBusNotification-ScheduleTime"
  package static let apnsExpiry = "ServiceBusNotification-Apns-Expiry"

  // Reply headers.
  package static let location = "Location"
  package static let retryAfter = "Retry-After"
  package static let trackingID = "TrackingId"
  package static let correlationID = "x-ms-correlation-request-id"

  /// The send format that addresses template registrations.
  package static let templateFormat = "template"

  // Media types.
  package static let json = "application/json;charset=utf-8"
  /// Also of the installation JSON that the hub returns (spec 4.3).
  package static let xml = "application/xml; charset=utf-8"

  /// The namespace of telemetry and registration documents (spec 1.5).
  package static let connectNamespace =
    "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"
  package static let schemaInstanceNamespace = "http://www.w3.org/2001/XMLSchema-instance"
}
