package import NotificationHubs

/// The sender of a request, and its rights in the hub.
package struct Caller: Hashable, Sendable {
  /// The name in the activity log: `policy/NAME`, `user/NAME`, `command-line/NAME`.
  package let name: String
  package let via: HubActivity.Way
  package let rights: AccessRights

  package init(name: String, via: HubActivity.Way, rights: AccessRights) {
    self.name = name
    self.via = via
    self.rights = rights
  }

  /// A client that has the key of a policy.
  static func policy(_ policy: AccessPolicy) -> Caller {
    Caller(name: "policy/\(policy.name)", via: .key, rights: policy.rights)
  }
}

/// A caller who has been admitted to a hub; ``require(_:)`` checks the right to an operation.
package final class Admission: Sendable {
  package let hub: Hub
  package let caller: Caller

  package init(hub: Hub, caller: Caller) {
    self.hub = hub
    self.caller = caller
  }

  /// The admission of the request that the task works on: it determines the turn of its work in the
  /// store.
  @TaskLocal package static var current: Admission?

  /// - Throws: 403: without a body for a missing right, with one for a disabled hub.
  package func require(_ right: AccessRights) throws(HubFailure) {
    guard caller.rights.grants(right) else {
      throw .missingRight.hinting(
        "\(caller.name) lacks the right \(right.words.joined(separator: ", ")) in this hub; it has "
          + caller.rights.words.joined(separator: ", ") + ".")
    }
    if hub.isDisabled { throw .disabled(hub) }
  }
}
