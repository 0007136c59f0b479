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
  ///   - hub: The hub's name, decoded from the path.
  ///   - right: The right that the operation needs. Manage includes the others.
  /// - Throws: 401 for an invalid token; 404 for a missing hub, but only if the token is valid for
  ///   the namespace; 403 without a body for a missing right, with one for a disabled hub.
  package func authorize(
    _ call: TokenCall, hub name: String, requiring right: AccessRights
  ) async throws(HubFailure) -> Hub {
    let admission = try await admit(call, hub: name)
    try admission.require(right)
    return admission.hub
  }

  /// The first half of ``authorize(_:hub:requiring:)``: authenticates the caller. ``Admission/require(_:)`` then checks the right.
  ///
  /// - Parameter start: The time when a reply began that is still in progress: it may outlast its
  ///   token, but not the token's key. `nil` is now.
  package func admit(
    _ call: TokenCall, hub name: String, since start: Date? = nil
  ) async throws(HubFailure) -> Admission {
    let proof = try await proof(of: call, hub: name, at: start)
    guard let admission = proof.signer.admission else {
      throw .noHub.hinting("There is no hub '\(name)' here.")
    }
    return admission
  }

  /// Does the same as ``admit(_:hub:since:)``, if the directory in memory is fresh and has the hub and
  /// the policy.
  /// - Returns: `nil` if only ``admit(_:hub:since:)`` can determine it.
  package func admitAtOnce(_ call: TokenCall, hub name: String) throws(HubFailure) -> Admission? {
    let token = try call.token()
    guard let found = directory.fresh?.signers(of: token, hub: name), found.entry != nil,
      !found.signers.isEmpty
    else { return nil }
    return try signer(of: token, in: found.signers, call, hub: name, at: clock.now()).admission
  }

  /// Authorizes a request to manage hubs (docs/protocol/rest.md, section 2, rows 25 to 29).
  ///
  /// - Parameters:
  ///   - hub: `nil` for the list of all.
  ///   - ofNamespace: Whether the policy must be one of the namespace.
  /// - Returns: The hub, disabled or not, `nil` when there is none with that name; and the caller.
  /// - Throws: 401 for a token that is invalid or lacks Manage.
  package func authorizeManagement(
    _ call: TokenCall, hub: String?, ofNamespace: Bool
  ) async throws(HubFailure) -> (hub: Hub?, caller: Caller) {
    let proof = try await proof(of: call, hub: hub ?? "")
    guard proof.signer.policy.rights.contains(.manage), proof.signer.isOfNamespace || !ofNamespace
    else { throw .manageClaim }
    return (proof.entry?.hub, proof.signer.caller)
  }

  /// The signer of a token, if it can be determined immediately from a fresh directory in memory.
  /// - Returns: Hub and policy; `nil` if only ``admit(_:hub:since:)`` can determine it.
  /// - Throws: The fault of the token.
  package func sender(of call: TokenCall, hub name: String) throws(HubFailure) -> String? {
    let token = try call.token()
    let now = clock.now()
    let isExpired = token.isExpired(at: now)
    guard let snapshot = directory.fresh else {
      if isExpired { throw .expired(token, at: now) }
      return nil
    }
    let (entry, signers) = snapshot.signers(of: token, hub: name)
    guard let signer = signers.first(where: { $0.hasSigned(token) }) else {
      // A name that is unknown here may have just been created by another process.
      if entry == nil || signers.isEmpty, !isExpired { return nil }
      throw .unsigned(by: token.keyName, for: name)
    }
    if isExpired { throw .expired(token, at: now) }
    return "\(entry?.hub.id ?? 0)/\(signer.policy.name)"
  }

  /// Verifies a token, and returns the policy that signed it.
  /// - Parameter time: The time at which the token must be valid; `nil` is now.
  private func proof(
    of call: TokenCall, hub: String, at time: Date? = nil
  ) async throws(HubFailure) -> (entry: HubSnapshot.Entry?, signer: PolicySigner) {
    let token = try call.token()
    let (entry, signers) = try await answering {
      let found = try await directory.snapshot().signers(of: token, hub: hub)
      if found.entry != nil, !found.signers.isEmpty { return found }
      // Another process may just have created it.
      return try await directory.refresh().signers(of: token, hub: hub)
    }
    return (
      entry, try signer(of: token, in: signers, call, hub: hub, at: time ?? clock.now())
    )
  }

  private func signer(
    of token: SharedAccessSignature, in signers: [PolicySigner], _ call: TokenCall, hub: String,
    at now: Date
  ) throws(HubFailure) -> PolicySigner {
    guard let signer = signers.first(where: { $0.hasSigned(token) }) else {
      throw .unsigned(by: token.keyName, for: hub)
    }
    if token.isExpired(at: now) { throw .expired(token, at: now) }
    guard token.covers(path: call.path, hosts: call.hosts) else {
      throw .invalidAudience.hinting(
        "The token is for \(token.rawResource), the request was for \(call.address)")
    }
    return signer
  }
}

/// The parts of a request that say who calls, and for what, as received.
package struct TokenCall: Sendable {
  /// The value of `Authorization`; `nil` when there is none.
  private let header: ArraySlice<UInt8>?
  private let host: ArraySlice<UInt8>?
  /// The whole path, with or without query.
  fileprivate let path: ArraySlice<UInt8>
  /// The names under which clients may know this server.
  fileprivate let hosts: [ArraySlice<UInt8>]

  /// - Parameters:
  ///   - header: The value of `Authorization`; `nil` when there is none.
  ///   - host: The value of `Host`.
  ///   - path: The whole path, with or without query.
  ///   - publicNames: Further names under which clients may know this server.
  package init(
    header: ArraySlice<UInt8>?, host: ArraySlice<UInt8>?, path: ArraySlice<UInt8>,
    publicNames: [String] = []
  ) {
    self.header = header
    self.host = host
    self.path = path
    hosts = (host.map { [$0] } ?? []) + publicNames.map { Array($0.utf8)[...] }
  }

  fileprivate func token() throws(HubFailure) -> SharedAccessSignature {
    guard let header else { throw .missingToken }
    guard let token = try? SharedAccessSignature(parsing: header) else { throw .malformedToken }
    return token
  }

  fileprivate var address: String {
    String(decoding: (host ?? []) + path, as: UTF8.self)
  }
}

extension HubSnapshot {
  /// A hub, and the policies that may have signed a token for it: the hub's come before the
  /// namespace's.
  fileprivate func signers(
    of token: SharedAccessSignature, hub name: String
  ) -> (entry: Entry?, signers: [PolicySigner]) {
    let entry = hub(named: name)
    let signers = entry?.signers ?? namespaceSigners
    return (entry, signers.filter { token.mayName($0.policy.name) })
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
