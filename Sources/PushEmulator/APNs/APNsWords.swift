/// Where a device token, or a key, is valid.
package enum APNsEnvironment: String, CaseIterable, Sendable, Codable {
  case production, sandbox
}

/// What an address of APNs is for: each environment has one of either kind.
enum APNsInterface: Sendable {
  /// Pushes to devices and broadcasts.
  case pushes
  case channelManagement
}

/// The environments a key or an app may use.
enum APNsEnvironmentScope: String, CaseIterable, Sendable, Codable {
  case production, sandbox, both

  func allows(_ environment: APNsEnvironment) -> Bool {
    self == .both || rawValue == environment.rawValue
  }
}

/// Whether a key signs for all apps of its team, or for listed topics only.
enum APNsKeyScope: String, CaseIterable, Sendable, Codable {
  case team, topic
}

/// What a device token is for; each kind of an app has tokens of its own (emulator.md, 2.2).
enum APNsKind: String, CaseIterable, Sendable, Codable {
  /// Serves background pushes too.
  case alert
  case voip, complication, pushtotalk, fileprovider, liveactivity, location, controls, widgets

  /// What the topic has after the bundle id (apns.md, section 3).
  var topicSuffix: String {
    switch self {
    case .alert: ""
    case .voip: ".voip"
    case .complication: ".complication"
    case .pushtotalk: ".voip-ptt"
    case .fileprovider: ".pushkit.fileprovider"
    case .liveactivity: ".push-type.liveactivity"
    case .location: ".location-query"
    case .controls: ".push-type.controls"
    case .widgets: ".push-type.widgets"
    }
  }

  /// Bytes of payload; more is refused.
  var payloadLimit: Int { self == .voip ? 5120 : 4096 }
}

/// The values of `apns-push-type` (apns.md, section 3).
enum APNsPushType: String, CaseIterable, Sendable {
  case alert, background, voip, complication, fileprovider, liveactivity, location, pushtotalk
  case controls, widgets, mdm

  /// The kind of token it goes to.
  var kind: APNsKind { APNsKind(rawValue: rawValue) ?? .alert }

  init?(_ bytes: ArraySlice<UInt8>) {
    guard bytes.count <= 12 else { return nil }
    self.init(rawValue: String(decoding: bytes, as: UTF8.self))
  }
}
