extension EmulatorServer {
  /// A push that a virtual device has been shown.
  package struct ShownPush: Sendable {
    /// The push's `apns-id`: a repeat of the same push carries the same.
    package let id: String
    package let payload: [UInt8]
  }

  /// What the history of a device still holds of what it was shown, oldest first
  /// (``EmulatorOptions/eventsPerDevice``, ``EmulatorOptions/historyBytes``).
  package func pushes(shownOn device: VirtualDevice) throws -> [ShownPush] {
    try core().withState { state in
      let index = try state.deviceIndex(device.deviceID)
      let limit = state.devices.limits.eventsPerDevice
      return state.devices.events(of: index, after: 0, limit: limit).compactMap { event in
        guard case .notification(let delivery) = event.body else { return nil }
        return ShownPush(
          id: delivery.notification.id.text, payload: delivery.notification.payload)
      }
    }
  }

  /// Requests that the services have answered or let go unanswered, since the start.
  package func requestCount() throws -> Int { try core().withState { $0.statistics.requests } }
}
