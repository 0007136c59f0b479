import Foundation
import HubTesting
import NotificationHubs

@testable import HubCore

extension DispatchWorld {
  /// The use cases over this world's store, or over what a process of its own sees of it.
  func service(
    _ dispatcher: Dispatcher, limits: HubLimits = .strict, store: (any HubStore)? = nil
  ) -> HubService {
    let store = store ?? self.store
    return HubService(
      store: store, directory: HubDirectory(store: store, clock: clock.hubClock),
      dispatcher: dispatcher, clock: clock.hubClock, random: .system, limits: limits)
  }
}

/// The header fields of a send, as a request has them.
func sendFields(
  _ format: String = "apple", _ others: [String: String] = [:]
) -> [(name: String, value: String)] {
  [(name: "ServiceBusNotification-Format", value: format)]
    + others.map { (name: $0.key, value: $0.value) }
}

let applePayload = Array(#"{"aps":{"alert":"hi"}}"#.utf8)

/// The status of the ``HubFailure`` that work ends with; `nil` when it ends well.
func refusal(_ work: () async throws -> Void) async -> HubFailure? {
  do {
    try await work()
    return nil
  } catch {
    return error as? HubFailure ?? HubFailure(status: 0, message: "\(error)")
  }
}
