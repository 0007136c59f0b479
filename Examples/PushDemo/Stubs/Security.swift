// The declarations that the device SDK uses of the keychain and of app groups, as in the iOS SDK, as far as a
// system without Core Foundation can. The keychain works, in memory, so that Tests/Keychain can use it.

import Foundation

public typealias OSStatus = Int32
public typealias CFString = String
public typealias CFDictionary = NSDictionary
public typealias CFTypeRef = AnyObject

public let errSecSuccess: OSStatus = 0
public let errSecDuplicateItem: OSStatus = -25299
public let errSecItemNotFound: OSStatus = -25300
public let errSecInteractionNotAllowed: OSStatus = -25308

public let kSecClass: CFString = "class"
public let kSecClassGenericPassword: CFString = "genp"
public let kSecAttrService: CFString = "svce"
public let kSecAttrAccount: CFString = "acct"
public let kSecAttrAccessGroup: CFString = "agrp"
public let kSecAttrAccessible: CFString = "pdmn"
public let kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly: CFString = "cku"
public let kSecReturnData: CFString = "r_Data"
public let kSecUseDataProtectionKeychain: CFString = "nleg"
public let kSecValueData: CFString = "v_Data"

/// The items by class, service, account and group. `nonisolated(unsafe)`: its users take turns.
public nonisolated(unsafe) var standInItems: [[String]: NSDictionary] = [:]
/// The answer to every call, in place of the keychain's own.
public nonisolated(unsafe) var standInStatus: OSStatus?

private func key(_ query: NSDictionary) -> [String] {
  [kSecClass, kSecAttrService, kSecAttrAccount, kSecAttrAccessGroup].map {
    query[$0] as? String ?? ""
  }
}

// swift-format-ignore: AlwaysUseLowerCamelCase
public func SecItemCopyMatching(
  _ query: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?
) -> OSStatus {
  if let standInStatus { return standInStatus }
  guard let item = standInItems[key(query)] else { return errSecItemNotFound }
  result?.pointee = (item[kSecValueData] as? Data).map { NSData(data: $0) }
  return errSecSuccess
}
// swift-format-ignore: AlwaysUseLowerCamelCase
public func SecItemAdd(
  _ attributes: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?
) -> OSStatus {
  if let standInStatus { return standInStatus }
  guard standInItems[key(attributes)] == nil else { return errSecDuplicateItem }
  standInItems[key(attributes)] = attributes
  return errSecSuccess
}
// swift-format-ignore: AlwaysUseLowerCamelCase
public func SecItemUpdate(
  _ query: CFDictionary, _ attributesToUpdate: CFDictionary
) -> OSStatus {
  if let standInStatus { return standInStatus }
  guard let item = standInItems[key(query)] else { return errSecItemNotFound }
  let changed = NSMutableDictionary(dictionary: item as? [AnyHashable: Any] ?? [:])
  changed[kSecValueData] = attributesToUpdate[kSecValueData]
  standInItems[key(query)] = changed
  return errSecSuccess
}
// swift-format-ignore: AlwaysUseLowerCamelCase
public func SecItemDelete(_ query: CFDictionary) -> OSStatus {
  if let standInStatus { return standInStatus }
  return standInItems.removeValue(forKey: key(query)) == nil ? errSecItemNotFound : errSecSuccess
}

extension FileManager {
  // Of Foundation, there.
  public func containerURL(forSecurityApplicationGroupIdentifier group: String) -> URL? {
    group.hasPrefix("group.")
      ? temporaryDirectory.appending(path: "\(group)-\(ProcessInfo.processInfo.processIdentifier)")
      : nil
  }
}
