package import NotificationHubs

extension HubService {
  /// The credentials of a hub, in the order of the platforms' names.
  /// - Throws: 404 when there is no such hub.
  package func credentials(hub name: String) async throws(HubFailure) -> [PushCredential] {
    let hub = try await hub(named: name)
    return try await answering { try await store.credentials(hub: hub.id) }
      .sorted { $0.platform.rawValue < $1.platform.rawValue }
  }

  /// Sets or replaces the credential of a platform, once the platform's gateway has read it and
  /// found nothing missing.
  /// - Throws: 400 with what is wrong with the credential, 404 when there is no such hub.
  package func setCredential(
    _ credential: PushCredential, hub name: String, checkedBy gateways: any GatewayDirectory
  ) async throws(HubFailure) {
    let hub = try await hub(named: name)
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
  package func removeCredential(
    _ platform: PushPlatform, hub name: String
  ) async throws(HubFailure) {
    let hub = try await hub(named: name)
    let wasThere = try await changing {
      try await store.deleteCredential(platform, hub: hub.id)
    }
    guard wasThere else {
      throw HubFailure(
        status: 404, message: "The hub has no credential for '\(platform.rawValue)'")
    }
    await dispatcher.credentialChanged(platform, hub: hub.id)
  }
}
