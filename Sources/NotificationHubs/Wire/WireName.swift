/// Names of the protocol that client and server share (docs/protocol/rest.md, sections 1.2–1.4,
/// 5.1).
package enum WireName {
  package static let apiVersionParameter = "api-version"
  /// The protocol version that this library implements.
  package static let apiVersion = "2020-06"

  // Request headers.
  package static let authorization = "Authorization"
  package static let contentType = "Content-Type"
  package static let format = "ServiceBusNotification-Format"
  package static let tags = "ServiceBusNotification-Tags"
  /// A few tutorials send this in place of ``tags``.
  package static let tagsAlias = "Tags"
  package static let deviceHandle = "ServiceBusNotification-DeviceHandle"
  package static let scheduleTime = "ServiceBusNotification-ScheduleTime"
  package static let ifMatch = "If-Match"
  /// Belfry only: sends with the same key get the same reply and a single delivery.
  package static let idempotencyKey = "Idempotency-Key"
  /// Belfry only: the client understands elements that the original's documents do not have.
  package static let extensions = "Belfry-Extensions"
  /// The older form of `apns-priority`; the newer header takes precedence (docs/protocol/rest.md,
  /// section 5.1).
  package static let olderApnsPriority = "X-Apns-Priority"
  package static let baiduMessageType = "X-Baidu-Message-Type"
  package static let wnsType = "X-WNS-Type"
  package static let webPushTTL = "TTL"
  package static let webPushUrgency = "Urgency"
  package static let webPushTopic = "Topic"
  package static let mpnsClass = "X-NotificationClass"
  /// The keys of a browser in a direct send, in addition to its endpoint.
  package static let browserP256DH = "P256DH"
  package static let browserAuth = "Auth"

  // Query parameters.
  package static let top = "$top"
  package static let skip = "$skip"
  package static let filter = "$filter"
  package static let continuationParameter = "continuationtoken"
  package static let direct = "direct"
  package static let test = "test"
  /// Belfry only: evaluates a send without sending.
  package static let dryRun = "dry-run"
  /// Belfry only: the expression of the audience to count.
  package static let audienceTags = "tags"

  /// The last path segment of a direct batch send.
  package static let batch = "$batch"
  /// The first path segment of the lists of a namespace, followed by that of its hubs
  /// (docs/protocol/rest.md, section 8.5).
  package static let resources = "$Resources"

  // Reply headers.
  package static let location = "Location"
  package static let contentLocation = "Content-Location"
  package static let etag = "ETag"
  package static let continuationToken = "x-ms-continuationtoken"
  package static let retryAfter = "Retry-After"
  package static let trackingID = "TrackingId"
  /// Belfry only: the reason why a request was rejected, in words for people, where the original's
  /// reply has none (docs/protocol/sas.md, section 6).
  package static let reason = "Belfry-Reason"
  package static let correlationID = "x-ms-correlation-request-id"

  /// The send format that addresses template registrations.
  package static let templateFormat = "template"

  // Media types.
  package static let json = "application/json;charset=utf-8"
  /// Also the media type of the installation JSON that the hub returns (docs/protocol/rest.md,
  /// section 4.3).
  package static let xml = "application/xml; charset=utf-8"
  package static let atomEntry = "application/atom+xml; type=entry; charset=utf-8"
  package static let atomFeed = "application/atom+xml; type=feed; charset=utf-8"

  /// The namespace of telemetry and registration documents (docs/protocol/rest.md, section 1.5).
  package static let connectNamespace =
    "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"
  package static let schemaInstanceNamespace = "http://www.w3.org/2001/XMLSchema-instance"
  package static let atomNamespace = "http://www.w3.org/2005/Atom"
  /// Used only for the attribute `a:etag`.
  package static let metadataNamespace =
    "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"
  /// The namespace of the property maps of jobs; two clients look for its prefix `d3p1`
  /// (docs/protocol/rest.md, section 7).
  package static let arraysNamespace =
    "http://schemas.microsoft.com/2003/10/Serialization/Arrays"
}
