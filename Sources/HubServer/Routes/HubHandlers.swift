import Foundation
import HTTPServer
import HubCore
import NotificationHubs
import Synchronization

/// Hubs themselves (docs/protocol/rest.md, section 8).
struct HubHandlers: RouteHandlers {
  let api: HubAPI

  func put(_ call: ManagementCall) async throws -> HTTPResponse {
    let condition: ETagCondition
    do {
      condition = try ETagCondition(ifMatch: call.request.headers[WireName.ifMatch])
    } catch {
      throw HubFailure(status: 412, message: error.description)
    }
    var wanted: HubDescription
    do {
      wanted = try HubDescription.decodeRequest(call.request.body, name: call.name)
    } catch {
      throw HubFailure(status: 400, message: error.description)
    }
    let now = service.clock.now()
    switch condition {
    case .none:
      let hub = try await service.createHub(named: call.name, wanted.change(at: now))
      return try await description(call, status: .created, published: hub.createdAt)
    case .any:
      if !call.request.readsExtensions,
        let entry = try await service.description(ofHub: call.name)
      {
        wanted = wanted.keepingExtensions(of: HubDescription(entry))
      }
      _ = try await service.updateHub(named: call.name, wanted.change(at: now))
      return try await description(call, status: .ok, published: nil)
    case .tag:
      // Hubs have no etag that a client could know.
      throw HubFailure(status: 412, message: ETagCondition.fault)
    }
  }

  func get(_ call: ManagementCall) async throws -> HTTPResponse {
    guard call.exists, let entry = try await service.description(ofHub: call.name) else {
      // As recorded: the request falls through to an empty list of services.
      return services([], call)
    }
    return try await description(call, status: .ok, published: entry.hub.createdAt)
  }

  func delete(_ call: ManagementCall) async throws -> HTTPResponse {
    try await service.deleteHub(named: call.name)
    return call.replies.bare(.ok)
  }

  func services(_ call: ManagementCall) async throws -> HTTPResponse {
    services(try await service.descriptions().map(\.hub).filter(call.shows).map(\.name), call)
  }

  func list(_ call: ManagementCall) async throws -> HTTPResponse {
    var entries = try await service.descriptions().filter { call.shows($0.hub) }[...]
    if let skip = try number(call, "$skip") { entries = entries.dropFirst(skip) }
    if let top = try number(call, WireName.top) { entries = entries.prefix(top) }
    let items = entries.map {
      (hub: shown($0, call), published: $0.hub.createdAt, updated: $0.hub.updatedAt)
    }
    let feed = HubListing.descriptions(
      items, address: api.address(of: call.request), namespace: namespace(of: call.request),
      now: service.clock.now())
    return call.replies.atom(WireName.atomFeed, feed)
  }

  private func number(_ call: ManagementCall, _ name: String) throws -> Int? {
    guard let item = call.request.target.queryItem(name) else { return nil }
    guard let number = Int(item.value ?? ""), number >= 0 else {
      throw HubFailure(status: 400, message: "'\(name)' must be a whole number from 0")
    }
    return number
  }

  // MARK: Replies

  private func description(
    _ call: ManagementCall, status: HTTPStatus, published: Date?
  ) async throws -> HTTPResponse {
    guard let entry = try await service.description(ofHub: call.name) else {
      throw HubFailure.noHub
    }
    let document = shown(entry, call).entryXML(
      address: api.address(of: call.request), namespace: namespace(of: call.request),
      published: published, updated: entry.hub.updatedAt)
    return call.replies.atom(WireName.atomEntry, document, status: status)
  }

  private func shown(_ entry: HubSnapshot.Entry, _ call: ManagementCall) -> HubDescription {
    var hub = HubDescription(entry)
    if !call.showsSecrets(of: entry.hub) { hub = hub.withoutSecrets }
    return call.request.readsExtensions ? hub : hub.withoutExtensions
  }

  /// The namespace's name: the configured one or, as in the original, the first label of the host.
  private func namespace(of request: HTTPRequest) -> String {
    if let name = api.configuration.namespace { return name }
    let labels = api.host(of: request).prefix { $0 != ":" }.split(separator: ".")
    let isAddress = labels.last?.allSatisfy(\.isNumber) ?? true
    guard labels.count > 1, !isAddress, let first = labels.first else { return "belfry" }
    return first.lowercased()
  }

  private func services(_ hubs: [String], _ call: ManagementCall) -> HTTPResponse {
    let first = Self.serviceNumber.add(hubs.count + 1, ordering: .relaxed).oldValue
    let feed = HubListing.services(
      hubs: hubs, endpoint: api.host(of: call.request), service: Self.serviceID, number: first,
      now: service.clock.now())
    return call.replies.atom(WireName.atomFeed, feed)
  }

  // As recorded, the ids of list entries are a UUID of the server and an increasing number.
  private static let serviceID = UUID().uuidString.lowercased()
  private static let serviceNumber = Atomic<Int>(1)
}
