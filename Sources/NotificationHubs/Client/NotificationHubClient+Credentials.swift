/// What a hub shows push services to prove who it is. Belfry only.
extension NotificationHubClient {
  /// The hub's credentials without their secrets, with the times at which they end. Needs the Manage right.
  public func credentials() async throws -> [CredentialState] {
    let reply = try await perform("GET", ["credentials"])
    return try reply.read { (body) throws(WireFormatError) in try CredentialState.read(json: body) }
  }

  /// Tries the hub's credential at its push service, without any device noticing. Needs the Manage right.
  ///
  /// - Throws: ``NotificationHubError`` of the kind `notFound` when the hub has none.
  public func probeCredential(of platform: PushPlatform) async throws -> CredentialProbe {
    let reply = try await perform("POST", ["credentials", platform.rawValue, "probe"])
    return try reply.read { (body) throws(WireFormatError) in try CredentialProbe(json: body) }
  }
}
