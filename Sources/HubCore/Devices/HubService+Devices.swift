import Foundation
package import NotificationHubs

/// Belfry's extensions of the original service about devices (`docs/extensions.md`).
extension HubService {
  /// Maximum number of registrations, and of installations, that a search by handle returns.
  private static let searchLimit = 1_000

  /// The registrations and installations that a handle belongs to.
  ///
  /// - Parameter handle: A token, a channel's address, an endpoint or the JSON of a subscription.
  /// - Throws: 400 for a text that cannot be a handle.
  package func devices(
    hub: Hub, handle: String
  ) async throws(HubFailure) -> FoundDevices {
    let filter: RegistrationFilter
    do { filter = try RegistrationFilter(handle: handle) } catch {
      throw HubFailure(status: 400, message: error.message)
    }
    let now = clock.now()
    return try await answering {
      var found = try await store.devices(
        filter, hub: hub.id, asOf: now, limit: Self.searchLimit)
      if found.registrations.contains(where: { $0.stored.draft.platform == .apns }) {
        let credential = try await store.credentials(hub: hub.id).first { $0.platform == .apns }
        found.apnsHosts = credential.flatMap { gateways?.hosts(of: $0) } ?? [:]
      }
      return found
    }
  }

  /// Counts the devices that a send to this expression would reach now; nothing is sent.
  ///
  /// - Parameter tags: The expression as a send's header has it; `nil` for everyone.
  /// - Throws: ``HubFailure``: 400 for an expression that a send would also be refused for,
  ///   including an empty one.
  package func audienceCount(
    hub: Hub, tags: String?
  ) async throws(HubFailure) -> AudienceCount {
    var expression: TagExpression?
    if let tags {
      do { expression = try TagExpression(parsing: tags, limits: limits.tags) } catch {
        throw HubFailure(status: 400, message: error.message)
      }
    }
    let now = clock.now()
    return try await answering { [expression] in
      let counts = try await store.counts(of: expression, hub: hub.id, asOf: now)
      var items = counts.native.map {
        AudienceCount.Item(platform: $0.key, template: nil, devices: $0.value)
      }
      for (key, count) in counts.templates {
        items.append(.init(platform: key.platform, template: key.name, devices: count))
      }
      items.sort {
        ($0.platform.rawValue, $0.template ?? "", $0.template == nil ? 0 : 1)
          < ($1.platform.rawValue, $1.template ?? "", $1.template == nil ? 0 : 1)
      }
      return AudienceCount(
        total: items.reduce(0) { $0 + $1.devices }, counts: items, isEstimate: counts.isEstimate)
    }
  }

  /// Forgets a user: installations and everything stored about them, and every notification, sent
  /// or scheduled, that was for this user alone. May be repeated.
  ///
  /// Pushes that are being delivered at this moment may still arrive.
  package func eraseUser(hub: Hub, userID: String) async throws(HubFailure) -> UserErasure {
    guard Tag.user(userID).isValid else {
      throw HubFailure(
        status: 400,
        message: "The user's id in the path is none: \(Installation.identifierRule)")
    }
    let erasure = try await answering { try await store.eraseUser(userID, hub: hub.id) }
    await dispatcher.recheck(hub: hub.id)
    return erasure
  }

  // MARK: Registrations removed because of push services' reports

  /// Approximate number of removed registrations that one call restores: some tenths of a second of
  /// work.
  private static let restorationLimit = 5_000

  /// Restorable registrations that were removed because of push services' reports, by hour.
  package func removedDevices(
    hub: Hub, _ wave: RemovalWave
  ) async throws(HubFailure) -> RemovedDevices {
    RemovedDevices(try await answering { try await store.removals(wave, hub: hub.id) })
  }

  /// Restores some of them, unless an app has registered again meanwhile.
  package func restoreDevices(
    hub: Hub, _ wave: RemovalWave
  ) async throws(HubFailure) -> DeviceRestoration {
    let now = clock.now()
    return try await answering {
      var total = DeviceRestoration()
      var looked = 0
      while looked < Self.restorationLimit {
        // Small transactions, so that other writes get their turn.
        let part = try await store.restoreRemoved(wave, hub: hub.id, asOf: now, limit: 200)
        total.restored += part.restored
        total.superseded += part.superseded
        total.hasMore = part.hasMore
        looked += 200
        if !part.hasMore { break }
      }
      return total
    }
  }
}
