package import Foundation
package import NotificationHubs
import Synchronization

/// An entry of the activity log while its action is in progress. A send stores it in the
/// transaction that accepts the notification; any other entry is stored when the reply is known.
package final class ActivityNote: Sendable {
  private struct State {
    var action: ActivityAction
    var object: String?
    var isSettled = false
  }

  package let caller: Caller
  package let hub: Hub.ID
  package let hubName: String?
  private let address: String
  private let time: Date
  private let state: Mutex<State>

  /// - Parameters:
  ///   - hub: 0 for the namespace, and for a hub that is being created.
  ///   - isLook: Whether the log contains it only after ``showed(_:)``.
  package init(
    _ action: ActivityAction, of object: String? = nil, hub: Hub.ID, named hubName: String?,
    by caller: Caller, from address: String, at time: Date, isLook: Bool = false
  ) {
    self.hub = hub
    self.hubName = hubName
    self.caller = caller
    self.address = address
    self.time = time
    state = Mutex(State(action: action, object: object, isSettled: isLook))
  }

  /// Specifies the action or its object more exactly.
  package func refine(action: ActivityAction? = nil, object: String? = nil) {
    state.withLock { state in
      if let action { state.action = action }
      if let object { state.object = object }
    }
  }

  /// Removes the object.
  package func hideObject() { state.withLock { $0.object = nil } }

  /// Notes that the caller was shown an object, `nil` for a list, and that the log should say so.
  package func showed(_ object: String?) {
    state.withLock { ($0.object, $0.isSettled) = (object, false) }
  }

  /// Notes that it is already stored, or that nothing was done that the log should contain.
  package func settle() { state.withLock { $0.isSettled = true } }

  package var isSettled: Bool { state.withLock { $0.isSettled } }

  package func entry(status: Int, hub: Hub.ID? = nil) -> ActivityEntry {
    let (action, object) = state.withLock { ($0.action, $0.object) }
    return ActivityEntry(
      hub: hub ?? self.hub,
      HubActivity(
        time: time, hub: hubName, actor: caller.name, via: caller.via, action: action.rawValue,
        object: object.map { String($0.prefix(Self.longestObject)) }, address: address,
        status: status))
  }

  /// Ids are shorter, but a path need not contain an id.
  private static let longestObject = 300
}
