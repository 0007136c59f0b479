/// The kinds of push (header `apns-push-type`), spec `pns/apns.md` section 3.
enum APNsPushType: String, CaseIterable, Sendable {
  case alert
  case background
  case voip
  case complication
  case fileprovider
  case liveactivity
  case location
  case pushtotalk
  case controls
  case widgets
  case mdm

  /// What this kind's topic has behind the bundle id.
  var topicSuffix: String {
    switch self {
    case .alert, .background, .mdm: ""
    case .voip: ".voip"
    case .complication: ".complication"
    case .fileprovider: ".pushkit.fileprovider"
    case .liveactivity: ".push-type.liveactivity"
    case .location: ".location-query"
    case .pushtotalk: ".voip-ptt"
    case .controls: ".push-type.controls"
    case .widgets: ".push-type.widgets"
    }
  }

  /// The kind that a topic's suffix tells; `nil` for a plain bundle id.
  init?(topic: String) {
    let match = Self.allCases.first {
      !$0.topicSuffix.isEmpty && topic.hasSuffix($0.topicSuffix)
    }
    guard let match else { return nil }
    self = match
  }

  /// The largest payload, in bytes.
  var payloadLimit: Int { self == .voip ? 5120 : 4096 }

  /// `apns-priority` when nobody asked for one: background must be 5.
  var defaultPriority: String { self == .background ? "5" : "10" }
}
