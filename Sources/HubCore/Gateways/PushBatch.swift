import Wire

/// A 128-bit number derived from notification, handle and template, the same on every repeat, so
/// that a repeated push is recognisable. APNs sees it as `apns-id`.
package struct PushID: Hashable, Sendable {
  package let high: UInt64
  package let low: UInt64
  package init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// The canonical form of a UUID.
  package var uuidText: String { UUIDText.text(high: high, low: low) }

  package func appendUUID(to bytes: inout [UInt8]) {
    UUIDText.append(high: high, low: low, to: &bytes)
  }
}

/// One message in the form for a push service, shared by all requests that carry it.
package struct PushBody: Sendable {
  /// The payload as transmitted.
  package var bytes: [UInt8]
  /// Headers for the push service, names in lower case: what the template sets, and what the
  /// sender's request sets where the template leaves it open. Evaluated; never empty values.
  package var headers: [String: String]
  /// The time after which the push service may give up, in seconds since 1970 (0: try once); `nil`
  /// when neither template nor sender specified it.
  package var expiry: Int64?

  package init(bytes: [UInt8], headers: [String: String] = [:], expiry: Int64? = nil) {
    self.bytes = bytes
    self.headers = headers
    self.expiry = expiry
  }
}

/// One push: a handle and its body. Plain data; see ``Target``.
package struct PushRequest: Sendable {
  package let id: PushID
  /// The position of the handle in ``PushBatch/handles``.
  package let handle: Range<Int>
  /// Index into ``PushBatch/bodies``.
  package let body: Int32
  /// The time when the handle was last confirmed, in milliseconds since 1970 (rule
  /// `remove-if-older`).
  package let confirmedAt: Int64
  /// The presumed environment of the handle; a gateway without environments ignores it.
  package let environment: PushEnvironment

  package init(
    id: PushID, handle: Range<Int>, body: Int32, confirmedAt: Int64,
    environment: PushEnvironment = .own
  ) {
    self.id = id
    self.handle = handle
    self.body = body
    self.confirmedAt = confirmedAt
    self.environment = environment
  }
}

/// Pushes of one notification to one platform with one credential.
package struct PushBatch: Sendable {
  package var requests: [PushRequest]
  package var bodies: [PushBody]
  /// As in ``TargetPage/handles``.
  package var handles: [UInt8]

  package init(requests: [PushRequest] = [], bodies: [PushBody] = [], handles: [UInt8] = []) {
    self.requests = requests
    self.bodies = bodies
    self.handles = handles
  }
}

/// The environment of a handle at a push service, relative to the hub's credential: APNs separates
/// the devices of development builds from all others.
package enum PushEnvironment: UInt8, Sendable {
  /// The one that the credential names.
  case own = 0
  /// The other one.
  case other = 1
}
