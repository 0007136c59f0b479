import Foundation
import NotificationHubs
import Wire

/// What the Lock Screen would make of a Live Activity's payload: the app's own view is not here, so
/// its state is told in words.
struct LiveActivityShown: Sendable {
  /// `start`, `update` or `end`.
  let event: String
  /// The content state, a line for each member.
  let state: [String]

  /// - Returns: `nil` for the payload of anything else.
  init?(_ payload: String) {
    guard let aps = try? JSONValue.parse(Array(payload.utf8))["aps"],
      let event = aps["event"]?.scalarText, case .object(let members)? = aps["content-state"]
    else { return nil }
    self.event = event
    state = members.map { member in
      if let text = member.value.scalarText { return "\(member.name): \(text)" }
      var writer = JSONWriter()
      writer.value(member.value)
      return "\(member.name): " + String(decoding: writer.bytes, as: UTF8.self)
    }
  }

  var lines: [String] { ["Live Activity: \(event)"] + state }
}
