import Foundation
import HTTPServer
import HubCore
import NotificationHubs
import Synchronization

extension HubAPI {
  /// Answers a request for a hub itself or for the list of hubs.
  /// - Returns: `nil` when the request is for something else.
  func manage(_ request: HTTPRequest, replies: Replies) async throws -> HTTPResponse? {
    switch ManagementOperation.table.match(request.method, request.target, servesHead: false) {
    case .notFound: return nil
    case .methodNotAllowed(let allowed):
      try await requireToken(of: request)
      throw MethodRefusal(allowed)
    case .found(let operation, let parameters):
      // What URL layers make of "DELETE /hub/installations/.." must not be "DELETE /hub".
      if operation.changesHub, request.target.hasTrailingSlash {
        try await requireToken(of: request)
        throw HubFailure(
          status: 400, message: "A hub is changed or deleted without a slash at the path's end")
      }
      let call = ManagementCall(
        request: request, replies: replies, name: parameters["hub"] ?? "")
      let hub = try await authorize(call, operation)
      try APIVersion.check(request.target)
      switch operation {
      case .putHub: return try await putHub(call)
      case .getHub: return try await getHub(call, exists: hub != nil)
      case .deleteHub: return try await deleteHub(call)
      case .listServices: return try await listServices(call)
      case .listHubs: return try await listHubs(call)
      }
    }
  }

  /// To update, read or delete a hub its own Manage key will do; the rest takes the namespace's.
  private func authorize(
    _ call: ManagementCall, _ operation: ManagementOperation
  ) async throws(HubFailure) -> Hub? {
    let isCreation = operation == .putHub && call.request.headers[WireName.ifMatch] == nil
    let isList = operation == .listServices || operation == .listHubs
    do {
      return try await service.authorizeManagement(
        header: call.request.headers[WireName.authorization], hub: isList ? nil : call.name,
        host: call.request.headers["Host"], path: call.request.target.description,
        publicNames: configuration.publicHosts, ofNamespace: isCreation || isList)
    } catch {
      // As recorded: reading a hub tells a bad signature in these words (spec `sas.md` section 6).
      throw operation == .getHub && error == .invalidSignature ? .manageClaim : error
    }
  }

  private func putHub(_ call: ManagementCall) async throws -> HTTPResponse {
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
      // Hubs have no etag that one could know.
      throw HubFailure(status: 412, message: ETagCondition.fault)
    }
  }

  private func getHub(_ call: ManagementCall, exists: Bool) async throws -> HTTPResponse {
    guard exists, let entry = try await service.description(ofHub: call.name) else {
      // As recorded: the address falls through to a list of services that has none.
      return services([], call)
    }
    return try await description(call, status: .ok, published: entry.hub.createdAt)
  }

  private func deleteHub(_ call: ManagementCall) async throws -> HTTPResponse {
    try await service.deleteHub(named: call.name)
    return call.replies.bare(.ok)
  }

  private func listServices(_ call: ManagementCall) async throws -> HTTPResponse {
    services(try await service.descriptions().map(\.hub.name), call)
  }

  private func listHubs(_ call: ManagementCall) async throws -> HTTPResponse {
    var entries = try await service.descriptions()[...]
    if let skip = try number(call, "$skip") { entries = entries.dropFirst(skip) }
    if let top = try number(call, WireName.top) { entries = entries.prefix(top) }
    let items = entries.map {
      (hub: shown($0, call), published: $0.hub.createdAt, updated: $0.hub.updatedAt)
    }
    let feed = HubListing.descriptions(
      items, address: address(of: call.request), namespace: namespace(of: call.request),
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
      address: address(of: call.request), namespace: namespace(of: call.request),
      published: published, updated: entry.hub.updatedAt)
    return call.replies.atom(WireName.atomEntry, document, status: status)
  }

  private func shown(_ entry: HubSnapshot.Entry, _ call: ManagementCall) -> HubDescription {
    let hub = HubDescription(entry)
    return call.request.readsExtensions ? hub : hub.withoutExtensions
  }

  /// The namespace's name: as it was set or, as the original has it, the first part of the host.
  private func namespace(of request: HTTPRequest) -> String {
    if let name = configuration.namespace { return name }
    let labels = host(of: request).prefix { $0 != ":" }.split(separator: ".")
    let isAddress = labels.last?.allSatisfy(\.isNumber) ?? true
    guard labels.count > 1, !isAddress, let first = labels.first else { return "belfry" }
    return first.lowercased()
  }

  private func services(_ hubs: [String], _ call: ManagementCall) -> HTTPResponse {
    let first = Self.serviceNumber.add(hubs.count + 1, ordering: .relaxed).oldValue
    let feed = HubListing.services(
      hubs: hubs, endpoint: host(of: call.request), service: Self.serviceID, number: first,
      now: service.clock.now())
    return call.replies.atom(WireName.atomFeed, feed)
  }

  // The ids of list entries are a server's UUID and a number that rises, as recorded.
  private static let serviceID = UUID().uuidString.lowercased()
  private static let serviceNumber = Atomic<Int>(1)
}

/// A request for a hub itself, or for the list of hubs.
private struct ManagementCall {
  let request: HTTPRequest
  let replies: Replies
  /// The hub's; empty for a list.
  let name: String
}
