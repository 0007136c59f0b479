package import Foundation
package import NotificationHubs

/// Hubs in their form on the wire (docs/protocol/rest.md, section 8.1).
extension HubDescription {
  /// A complete hub, with the keys and the credentials' secrets: for callers with Manage.
  package init(_ entry: HubSnapshot.Entry) {
    self.init(
      name: entry.hub.name, registrationTTL: entry.hub.registrationTTL,
      authorizationRules: entry.policies.map(AuthorizationRule.init),
      credentials: entry.credentials.mapValues { HubCredential($0.properties) },
      isDisabled: entry.hub.isDisabled, userMetadata: entry.hub.userMetadata)
  }

  /// The change that the description requests.
  package func change(at now: Date) -> HubChange {
    HubChange(
      registrationTTL: registrationTTL, isDisabled: isDisabled, userMetadata: userMetadata,
      policies: authorizationRules.map { rules in
        rules.map {
          HubChange.Policy(
            name: $0.keyName, rights: AccessRights($0.rights), primaryKey: $0.primaryKey,
            secondaryKey: $0.secondaryKey)
        }
      },
      credentials: credentials.map { platform, credential in
        PushCredential(platform: platform, properties: credential.properties, modifiedAt: now)
      })
  }
}

extension AuthorizationRule {
  fileprivate init(_ policy: AccessPolicy) {
    var rights: Set<Right> = []
    if policy.rights.contains(.listen) { rights.insert(.listen) }
    if policy.rights.contains(.send) { rights.insert(.send) }
    if policy.rights.contains(.manage) { rights.insert(.manage) }
    self.init(
      keyName: policy.name, rights: rights, primaryKey: policy.primaryKey,
      secondaryKey: policy.secondaryKey, createdTime: policy.createdAt,
      modifiedTime: policy.modifiedAt)
  }
}

extension AccessRights {
  fileprivate init(_ rights: Set<AuthorizationRule.Right>) {
    self = []
    if rights.contains(.listen) { insert(.listen) }
    if rights.contains(.send) { insert(.send) }
    if rights.contains(.manage) { insert(.manage) }
  }
}
