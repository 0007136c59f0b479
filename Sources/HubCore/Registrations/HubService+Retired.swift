import NotificationHubs

extension HubService {
  /// Refuses a device of a service that has ended, where the hub is to
  /// (docs/protocol/push-services/retired.md, section 1); by default it is taken, as clients
  /// expect.
  /// - Throws: 400 with the name of the successor.
  func checkRetired(_ platform: PushPlatform) throws(HubFailure) {
    guard limits.refusesRetired, let successor = platform.traits.successor else { return }
    throw HubFailure(
      status: 400,
      message: "The platform '\(platform.rawValue)' has been retired; use \(successor)")
  }
}
