package import Foundation
package import NotificationHubs
import Wire

extension HubService {
  /// Authorizes a request (docs/protocol/sas.md, sections 4 to 6).
  ///
  /// Expiry is compared without an allowance for clock skew: clients create tokens for twenty
  /// minutes and more and renew them well before, so an allowance would only extend the life of a
  /// leaked one.
  ///
  /// - Parameters:
  ///   - header: The value of `Authorization`; `nil` when there is none.
  ///   - hub: The hub's name, decoded from the path.
  ///   - host: The value of `Host`.
  ///   - path: The whole path as received, with or without query.
  ///   - publicNames: Further names under which clients may know this server.
  ///   - right: The right that the operation needs. Manage includes the others.
  /// - Throws: 401 for an invalid token; 404 for a missing hub, but only if the token is valid for
  ///   the namespace; 403 without a body for a missing right, with one for a disabled hub.
  package func authorize(
    header: String?, hub name: String, host: String?, path: String, publicNames: [String] = [],
    requiring right: AccessRights
  ) async throws(HubFailure) -> Hub {
    let admission = try await admit(
      header: header, hub: name, host: host, path: path, publicNames: publicNames)
    try admission.require(right)
    return admission.hub
  }

  /// The first half of ``authorize(header:hub:host:path:publicNames:requiring:)``: authenticates
  /// the caller. ``Admission/require(_:)`` then checks the right.
  ///
  /// - Parameter start: The time when a reply began that is still in progress: it may outlast its
  ///   token, but not the token's key. `nil` is now.
  package func admit(
    header: String?, hub name: String, host: String?, path: String, publicNames: [String] = [],
    since start: Date? = nil
  ) async throws(HubFailure) -> Admission {
    let call = TokenCall(header: header, hub: name, host: host, path: path, time: start)
    let proof = try await proof(of: call, publicNames: publicNames)
    guard let hub = proof.entry?.hub else {
      throw .noHub.hinting("There is no hub '\(name)' here.")
    }
    return Admission(hub: hub, caller: .policy(proof.signer.policy))
  }

  /// Authorizes a request to manage hubs (docs/protocol/rest.md, section 2, rows 25 to 29).
  ///
  /// - Parameters:
  ///   - hub: `nil` for the list of all.
  ///   - ofNamespace: Whether the policy must be one of the namespace.
  /// - Returns: The hub, disabled or not, `nil` when there is none with that name; and the caller.
  /// - Throws: 401 for a token that is invalid or lacks Manage.
  package func authorizeManagement(
    header: String?, hub: String?, host: String?, path: String, publicNames: [String] = [],
    ofNamespace: Bool
  ) async throws(HubFailure) -> (hub: Hub?, caller: Caller) {
    let call = TokenCall(header: header, hub: hub ?? "", host: host, path: path, time: nil)
    let proof = try await proof(of: call, publicNames: publicNames)
    guard proof.signer.policy.rights.contains(.manage), proof.signer.isOfNamespace || !ofNamespace
    else { throw .manageClaim }
    return (proof.entry?.hub, .policy(proof.signer.policy))
  }

  /// The signer of a token, if it can be determined immediately from a fresh directory in memory.
  /// - Parameter header: The value of `Authorization`; `nil` when there is none.
  /// - Returns: Hub and policy; `nil` if only ``admit(header:hub:host:path:publicNames:since:)``
  ///   can determine it.
  /// - Throws: The fault of the token.
  package func signer(ofHeader header: String?, hub name: String) throws(HubFailure) -> String? {
    guard let header else { throw .missingToken }
    guard let token = try? SharedAccessSignature(parsing: header) else { throw .malformedToken }
    let now = clock.now()
    let isExpired = token.isExpired(at: now)
    guard let snapshot = directory.fresh else {
      if isExpired { throw .expired(token, at: now) }
      return nil
    }
    let names = token.keyNameCandidates
    let entry = snapshot.hub(named: name)
    let policies = ((entry?.policies ?? []) + snapshot.namespacePolicies).filter {
      names.contains($0.name)
    }
    let signer = policies.first {
      token.isSigned(with: $0.primaryKey) || token.isSigned(with: $0.secondaryKey)
    }
    guard let signer else {
      // A name that is unknown here may have just been created by another process.
      if entry == nil || policies.isEmpty, !isExpired { return nil }
      throw .unsigned(by: token.keyName, for: name)
    }
    if isExpired { throw .expired(token, at: now) }
    return "\(entry?.hub.id ?? 0)/\(signer.name)"
  }

  private struct TokenCall {
    let header: String?
    let hub: String
    let host: String?
    let path: String
    /// The time at which the token must be valid; `nil` is now.
    let time: Date?
  }

  private struct Signer {
    let policy: AccessPolicy
    let isOfNamespace: Bool
  }

  /// Verifies a token, and returns the policy that signed it.
  private func proof(
    of call: TokenCall, publicNames: [String]
  ) async throws(HubFailure) -> (entry: HubSnapshot.Entry?, signer: Signer) {
    guard let header = call.header else { throw .missingToken }
    guard let token = try? SharedAccessSignature(parsing: header) else { throw .malformedToken }
    let (entry, policies) = try await signers(named: token.keyNameCandidates, hub: call.hub)
    let signer = policies.first {
      token.isSigned(with: $0.policy.primaryKey) || token.isSigned(with: $0.policy.secondaryKey)
    }
    guard let signer else { throw .unsigned(by: token.keyName, for: call.hub) }
    let now = call.time ?? clock.now()
    if token.isExpired(at: now) { throw .expired(token, at: now) }
    let hosts = call.host.map { [$0] + publicNames } ?? publicNames
    guard token.covers(path: call.path, hosts: hosts) else {
      throw .invalidAudience.hinting(
        "The token is for \(token.rawResource), the request was for \(call.host ?? "")\(call.path)")
    }
    return (entry, signer)
  }

  /// The policies that may have signed a token: the hub's come before the namespace's.
  private func signers(
    named names: [String], hub: String
  ) async throws(HubFailure) -> (HubSnapshot.Entry?, [Signer]) {
    func find(in snapshot: HubSnapshot) -> (HubSnapshot.Entry?, [Signer]) {
      let entry = snapshot.hub(named: hub)
      let own = (entry?.policies ?? []).map { Signer(policy: $0, isOfNamespace: false) }
      let all = own + snapshot.namespacePolicies.map { Signer(policy: $0, isOfNamespace: true) }
      return (entry, names.flatMap { name in all.filter { $0.policy.name == name } })
    }
    return try await answering {
      let found = find(in: try await directory.snapshot())
      if found.0 != nil, !found.1.isEmpty { return found }
      // Another process may just have created it.
      return find(in: try await directory.refresh())
    }
  }
}

extension AccessRights {
  /// Whether a policy with these rights permits operations that need that right.
  func grants(_ right: AccessRights) -> Bool { contains(.manage) || isSuperset(of: right) }
}

/// The refusals of docs/protocol/sas.md, section 6.
extension HubFailure {
  /// 401: the request has no `Authorization` header.
  package static let missingToken = HubFailure(
    status: 401, message: "MissingToken: The authorization header was not found.")
  /// 401: the header cannot be read as a token.
  package static let malformedToken = HubFailure(
    status: 401,
    message: "MalformedToken: The credentials contained in the authorization header are not in "
      + "the WRAP format.")
  /// 401: there is no policy with that name, or none of its keys has made this signature.
  package static let invalidSignature = HubFailure(
    status: 401, message: "InvalidSignature: The token has an invalid signature.")
  fileprivate static func unsigned(by policy: String, for hub: String) -> HubFailure {
    let place = hub.isEmpty ? "the namespace" : "hub '\(hub)', or that hub is not here"
    return .invalidSignature.hinting(
      "No key of a policy '\(policy)' made this signature for \(place).")
  }
  /// 401: the token has expired. The original service also gives no further details.
  package static let expiredToken = HubFailure(status: 401, message: "ExpiredToken: ")
  fileprivate static func expired(_ token: SharedAccessSignature, at now: Date) -> HubFailure {
    .expiredToken.hinting(
      "The token ended at \(WireDate.seconds(token.expiresAt)); the time here is "
        + "\(WireDate.seconds(now)).")
  }
  /// 401: the token is for another host or another part of the hub.
  package static let invalidAudience = HubFailure(
    status: 401,
    message: "InvalidAudience: The authorization header contains a token with a wrong audience.")

  /// 401: managing hubs requires the right Manage.
  package static let manageClaim = HubFailure(
    status: 401, message: "Manage claim is required for this operation.")

  static func disabled(_ hub: Hub) -> HubFailure {
    HubFailure(status: 403, message: "The notification hub '\(hub.name)' is disabled.")
  }
}

extension HubService {
  /// Creates a token for one resource of a hub, for callers who could create it themselves.
  ///
  /// - Parameters:
  ///   - resource: The absolute address that the token grants access to.
  ///   - right: The right that the token needs; it is signed with the policy that has the fewest
  ///     other rights.
  ///   - lifetime: In seconds.
  /// - Returns: `nil` when neither hub nor namespace has a policy with that right.
  package func token(
    for resource: String, hub: Hub, right: AccessRights, lifetime: TimeInterval
  ) async throws(HubFailure) -> SharedAccessSignature? {
    let snapshot = try await answering { try await directory.snapshot() }
    let own = snapshot.hub(hub.id)?.policies ?? []
    let policy = (own + snapshot.namespacePolicies).filter { $0.rights.grants(right) }
      .min { $0.rights.rawValue.nonzeroBitCount < $1.rights.rawValue.nonzeroBitCount }
    return policy.map {
      SharedAccessSignature(
        resource: resource, keyName: $0.name, key: $0.primaryKey,
        expiresAt: clock.now().addingTimeInterval(lifetime))
    }
  }
}
