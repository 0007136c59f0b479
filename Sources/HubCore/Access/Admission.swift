package import NotificationHubs

/// Who asks for something, and what they may do in the hub that they ask about.
package struct Caller: Hashable, Sendable {
  /// As the activity log names them: `policy/NAME`, `user/NAME`, `command-line/NAME`.
  package let name: String
  package let via: HubActivity.Way
  package let rights: AccessRights

  package init(name: String, via: HubActivity.Way, rights: AccessRights) {
    self.name = name
    self.via = via
    self.rights = rights
  }

  /// A client with the key of a policy.
  static func policy(_ policy: AccessPolicy) -> Caller {
    Caller(name: "policy/\(policy.name)", via: .key, rights: policy.rights)
  }
}

/// A caller who may ask about a hub; whether for this operation, ``require(_:)`` says.
package struct Admission: Sendable {
  package let hub: Hub
  package let caller: Caller

  package init(hub: Hub, caller: Caller) {
    self.hub = hub
    self.caller = caller
  }

  /// Under which the task works on a request: whose turn the store's work for it is.
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
