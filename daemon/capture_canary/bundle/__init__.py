"""What a vendor's support asks for, in one archive that names no host unless asked."""
