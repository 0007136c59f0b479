package import NotificationHubs

/// The credentials of a hub at the push services.
package struct HubCredentials: HubSubject {
  package let service: HubService

  /// The credentials of a hub, in the order of the platforms' names.
  /// - Throws: 404 when there is no such hub.
  package func list(hub name: String) async throws(HubFailure) -> [PushCredential] {
    let hub = try await service.hub(named: name)
    return try await answering { try await store.credentials(hub: hub.id) }
      .sorted { $0.platform.rawValue < $1.platform.rawValue }
  }

  /// Sets or replaces the credential of a platform, after the platform's gateway has validated it.
  /// - Throws: 400 with the fault of the credential, 404 when there is no such hub.
  package func set(
    _ credential: PushCredential, hub name: String, checkedBy gateways: any GatewayDirectory
  ) async throws(HubFailure) {
    let hub = try await service.hub(named: name)
    let isKnown = try await answering {
      do {
        return try await gateways.gateway(for: credential, hub: hub.id) != nil
      } catch let error as CredentialError {
        throw HubFailure(status: 400, message: error.description)
      }
    }
    guard isKnown else {
      throw HubFailure(
        status: 400,
        message: "This server has no gateway for the platform '\(credential.platform.rawValue)'")
    }
    try await changing { try await store.putCredential(credential, hub: hub.id) }
    await dispatcher.credentialChanged(credential.platform, hub: hub.id)
  }

  /// - Throws: 404 when there is no such hub or credential.
  package func remove(
    _ platform: PushPlatform, hub name: String
  ) async throws(HubFailure) {
    let hub = try await service.hub(named: name)
    let wasThere = try await changing {
      try await store.deleteCredential(platform, hub: hub.id)
    }
    guard wasThere else {
      throw HubFailure(
        status: 404, message: "The hub has no credential for '\(platform.rawValue)'")
    }
    await dispatcher.credentialChanged(platform, hub: hub.id)
  }

  /// The credentials of a hub without their secrets, in the order of the platforms' names.
  package func states(hub: Hub) async throws(HubFailure) -> [CredentialState] {
    try await list(hub: hub.name).map { credential in
      CredentialState(
        platform: credential.platform, kind: credential.kind, app: credential.app,
        endpoint: credential.endpoint, modifiedAt: credential.modifiedAt,
        expiresAt: gateways?.end(of: credential))
    }
  }

  /// Tries the credential of a platform at its push service.
  /// - Throws: 404 when the hub has none, 429 for too many attempts in a minute.
  package func probe(
    of platform: PushPlatform, hub: Hub
  ) async throws(HubFailure) -> CredentialProbe {
    guard
      let credential = try await list(hub: hub.name).first(where: { $0.platform == platform }
      )
    else {
      throw HubFailure(
        status: 404, message: "The hub has no credential for '\(platform.rawValue)'")
    }
    guard let prober = gateways as? any CredentialProber else {
      return CredentialProbe(.untried, "This server cannot try credentials.")
    }
    try service.probes.take(hub.id, at: clock.now())
    do {
      return try await prober.probe(credential)
    } catch {
      return CredentialProbe(.refused, reason: "cannot work", error.description)
    }
  }
}

extension HubService {
  package var credentials: HubCredentials { HubCredentials(service: self) }
}

extension PushCredential {
  /// The kind of authentication, in a word or two.
  package var kind: String {
    if platform == .wns, self["TenantId"] != nil { return "Entra secret" }
    if let certificate = platform.traits.certificate, self[certificate] != nil {
      return "certificate"
    }
    return platform.traits.secret
  }

  /// The identifier of the app at its push service, which is not secret.
  package var app: String? {
    ["AppName", "ProjectId", "VapidPublicKey", "PackageSid", "ClientId", "BaiduApiKey"]
      .lazy.compactMap { self[$0] }.first
  }

  /// The endpoint, if the credential names one.
  package var endpoint: String? {
    ["Endpoint", "SendUrlTemplate", "BaiduEndPoint", "WindowsLiveEndpoint"]
      .lazy.compactMap { self[$0] }.first
  }
}
