/// The words of the control API that are not particular to one push service.
enum Presence: String, CaseIterable, Sendable, Codable {
  /// Online while `online` is true, whether or not anybody listens.
  case flag
  /// Online exactly while an event stream of the device, or of its app, is open.
  case stream
}

/// Why a message was thrown away.
enum DiscardReason: String, CaseIterable, Sendable, Codable {
  case offlineNoStore = "offline-no-store"
  case storeFull = "store-full"
  case disabled
  case unregisteredSilent = "unregistered-silent"
  case badPayload = "bad-payload"
}

/// What a `state` event says.
enum DeviceStateWord: String, Sendable, Codable {
  case online, offline, unregistered, rotated
}

/// What became of a message; counted in the statistics and kept in the journal.
enum StoreAction: Int, CaseIterable, Sendable {
  /// Shown on the device at once.
  case delivered
  /// Waits until the device saves no more power.
  case held
  /// Waits until the device is online.
  case stored
  /// As `stored`, and an older one had to go.
  case replaced
  case discarded

  /// As the control API says it.
  var word: String {
    switch self {
    case .delivered: "delivered"
    case .held: "held"
    case .stored: "stored"
    case .replaced: "replaced"
    case .discarded: "discarded"
    }
  }
}
