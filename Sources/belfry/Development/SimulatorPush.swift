import Foundation
import NotificationHubs
import Wire

/// A push as a file for a simulator.
///
/// - SeeAlso: Xcode 11.4 release notes, "Simulator": a JSON object with `aps`, and the app in
///   `Simulator Target Bundle`; `xcrun simctl push booted FILE` or dropping the file sends it.
enum SimulatorPush {
  /// - Parameter payload: The JSON object that a phone has received.
  static func file(payload: Data, bundleID: String) -> Data {
    guard case .object(let members)? = try? JSONValue.parse(Array(payload)) else { return payload }
    let target = JSONValue.Member("Simulator Target Bundle", .string(bundleID))
    return Data(JSONValue.object([target] + members).jsonBytes)
  }
}
