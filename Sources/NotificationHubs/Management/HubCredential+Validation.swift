import Wire

extension HubCredential {
  /// What the credential lacks to be one of this platform; `nil` if it is whole (spec
  /// `rest-api.md` 8.1, table of properties).
  ///
  /// Apple's is not looked at: which properties it needs depends on their values, and its gateway
  /// checks both.
  func fault(_ platform: PushPlatform) -> String? {
    var families = platform.traits.requiredProperties
    // No credential at all is legal for the service that has unauthenticated senders.
    if platform == .mpns, properties.isEmpty { families = [] }
    guard let first = families.first, !families.contains(where: { lacking($0) == nil }) else {
      return nil
    }
    // The family that was begun is the one that was meant.
    let meant = families.first { names in names.contains { self[$0] != nil } } ?? first
    return lacking(meant).map { "'\(Self.element(platform))' must have the property '\($0)'." }
  }

  /// The first of these properties that is not there.
  private func lacking(_ names: [String]) -> String? {
    names.first { name in
      guard let value = self[name] else { return true }
      // The password of a certificate may be empty.
      return name != PlatformTraits.certificatePassword && value.trimmingBlanks.isEmpty
    }
  }
}
