/// A virtual device: one handle of one app at one push service.
///
/// A load test makes a hundred thousand of these, so the history stands elsewhere, and only for
/// devices that have one (`DeviceTable.logs`).
struct Device: Sendable {
  enum Registration: Sendable, Equatable {
    case registered
    /// Since then, in ms since the Unix epoch.
    case unregistered(at: Int64)
    case expired(at: Int64)
    /// The service never heard of the handle.
    case unknown
  }

  struct Flags: OptionSet, Sendable {
    let rawValue: UInt8
    static let online = Flags(rawValue: 1)
    static let followsStream = Flags(rawValue: 2)
    static let powerSaving = Flags(rawValue: 4)
    static let disabled = Flags(rawValue: 8)
    /// The app was deleted and the device with it; the place stays so that numbers do.
    static let deleted = Flags(rawValue: 16)
  }

  /// The app's number.
  let app: UInt32
  /// Less urgent messages wait; Web Push only (RFC 8030, section 5.3).
  var minUrgency = Urgency.veryLow
  /// Place of its log in `DeviceTable.logs`, or -1.
  var log: Int32 = -1
  var handle: DeviceHandle
  var flags: Flags
  var registration: Registration = .registered
  /// Until then (ms) a dead handle is still answered as a live one.
  var silentUntil: Int64 = 0
  /// The handle expires then (ms).
  var expiresAt: Int64 = .max

  /// What the push service knows of the handle at `now`, in ms.
  func registration(at now: Int64) -> Registration {
    if registration == .registered, now >= expiresAt { return .expired(at: expiresAt) }
    return registration
  }
}
